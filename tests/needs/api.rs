//! A small Messages API on the loopback, for the real Claude Code: it answers from a script.
//!
//! One request per connection, one thread per connection. Everything ends with the test: dropping
//! the API cuts what is still open and waits for its threads.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::support::world::PATIENCE;

/// Larger than any request of these tests.
const MAX_BODY: usize = 8 * 1024 * 1024;
/// Characters in one piece of a stream.
const PIECE: usize = 16;

/// What the model, or the service in its place, answers to one request.
#[derive(Clone)]
pub enum Reply {
    /// Content blocks.
    Blocks(Vec<Value>),
    Error {
        status: u16,
        kind: &'static str,
        message: &'static str,
        headers: Vec<(&'static str, String)>,
    },
    /// Part of an answer, and then the connection breaks.
    Dropped,
    /// Part of an answer, and then nothing more.
    Stalled,
}

impl Reply {
    pub fn says(text: &str) -> Self {
        Self::Blocks(vec![json!({"type": "text", "text": text})])
    }

    /// Asks for a tool.
    pub fn uses(tool: &str, input: Value) -> Self {
        Self::Blocks(Vec::new()).and_uses(tool, input)
    }

    /// And asks for a tool in the same message.
    pub fn and_uses(self, tool: &str, input: Value) -> Self {
        let Self::Blocks(mut blocks) = self else { unreachable!("only a message asks") };
        let id = format!("toolu_{tool}_{}", blocks.len());
        blocks.push(json!({"type": "tool_use", "id": id, "name": tool, "input": input}));
        Self::Blocks(blocks)
    }

    pub fn error(status: u16, kind: &'static str, message: &'static str) -> Self {
        Self::Error { status, kind, message, headers: Vec::new() }
    }

    pub fn with_header(mut self, name: &'static str, value: impl ToString) -> Self {
        let Self::Error { headers, .. } = &mut self else { unreachable!("only errors have them") };
        headers.push((name, value.to_string()));
        self
    }
}

pub struct Api {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    script: VecDeque<Reply>,
    /// When the script is over.
    then: Option<Reply>,
    /// Bodies of the main loop's requests.
    asked: Vec<String>,
    /// Request lines of all others.
    others: Vec<String>,
    open: Vec<TcpStream>,
    is_over: bool,
    ids: u32,
}

impl Api {
    /// Each reply once, in this order. What comes after them is an error that ends the agent.
    pub fn replying(script: impl IntoIterator<Item = Reply>) -> Self {
        let over = Reply::error(400, "invalid_request_error", "the script of this test is over");
        Self::start(script.into_iter().collect(), over)
    }

    /// The same reply to each request.
    pub fn always(reply: Reply) -> Self {
        Self::start(VecDeque::new(), reply)
    }

    fn start(script: VecDeque<Reply>, then: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        {
            let mut state = shared.state.lock().unwrap();
            state.script = script;
            state.then = Some(then);
        }
        let theirs = Arc::clone(&shared);
        let listener = std::thread::spawn(move || listen(&listener, &theirs));
        Self { address, shared, listener: Some(listener) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What the main loop was asked, request by request.
    pub fn asked(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().asked.clone()
    }

    pub fn count(&self) -> usize {
        self.shared.state.lock().unwrap().asked.len()
    }

    /// What else came, by its first line.
    pub fn others(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().others.clone()
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        let open = {
            let mut state = self.shared.state.lock().unwrap();
            state.is_over = true;
            std::mem::take(&mut state.open)
        };
        self.shared.ended.notify_all();
        for stream in open {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // The listener sees that it is over when somebody comes.
        let _ = TcpStream::connect(self.address);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads = Vec::new();
    for stream in listener.incoming().flatten() {
        {
            let mut state = shared.state.lock().unwrap();
            if state.is_over {
                break;
            }
            state.open.extend(stream.try_clone());
        }
        let theirs = Arc::clone(shared);
        threads.push(std::thread::spawn(move || {
            // A client that went away is its own business.
            let _ = serve(&stream, &theirs);
            let _ = stream.shutdown(Shutdown::Both);
        }));
    }
    for thread in threads {
        let _ = thread.join();
    }
}

struct Request {
    method: String,
    path: String,
    body: String,
}

fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let request = read(stream)?;
    let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
    let is_message = request.method == "POST" && request.path == "/v1/messages";
    // Only the main loop offers tools.
    if is_message && body["tools"].as_array().is_some_and(|tools| !tools.is_empty()) {
        let (reply, id) = {
            let mut state = shared.state.lock().unwrap();
            state.asked.push(request.body.clone());
            state.ids += 1;
            (state.script.pop_front().or_else(|| state.then.clone()), state.ids)
        };
        return answer(stream, shared, &body, &reply.expect("a reply"), id);
    }
    let line = format!("{} {}", request.method, request.path);
    shared.state.lock().unwrap().others.push(line);
    match (request.method.as_str(), request.path.as_str()) {
        ("POST", "/v1/messages") => answer(stream, shared, &body, &Reply::says("ok"), 0),
        ("POST", "/v1/messages/count_tokens") => {
            whole(stream, 200, &[], &json!({"input_tokens": 1000}))
        }
        ("HEAD", _) => head(stream, 200, &[("content-length", "0".to_owned())]),
        _ => whole(stream, 404, &[], &error("not_found_error", "not here")),
    }
}

fn read(stream: &TcpStream) -> io::Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut words = first.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "transfer-encoding" => is_chunked = value.contains("chunked"),
            _ => {}
        }
    }
    let body = if is_chunked { chunks(&mut reader)? } else { exactly(&mut reader, length)? };
    let body = String::from_utf8_lossy(&body).into_owned();
    Ok(Request { method: method.to_owned(), path: path.to_owned(), body })
}

fn exactly(reader: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    if length > MAX_BODY {
        return Err(io::Error::other("too large"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}

fn chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let digits = line.trim().split(';').next().unwrap_or_default();
        let length = usize::from_str_radix(digits, 16).map_err(io::Error::other)?;
        body.extend(exactly(reader, length)?);
        reader.read_line(&mut String::new())?;
        if length == 0 || body.len() > MAX_BODY {
            return Ok(body);
        }
    }
}

fn answer(
    stream: &TcpStream,
    shared: &Shared,
    asked: &Value,
    reply: &Reply,
    id: u32,
) -> io::Result<()> {
    let is_stream = asked["stream"] == true;
    match reply {
        Reply::Error { status, kind, message, headers } => {
            whole(stream, *status, headers, &error(kind, message))
        }
        Reply::Blocks(blocks) if is_stream => {
            start_stream(stream)?;
            events(asked, blocks, id).iter().try_for_each(|event| send(stream, event))
        }
        Reply::Blocks(blocks) => {
            let mut message = message(asked, id);
            message["content"] = json!(blocks);
            message["stop_reason"] = json!(stop_reason(blocks));
            message["usage"]["output_tokens"] = json!(42);
            whole(stream, 200, &[], &message)
        }
        Reply::Dropped | Reply::Stalled => {
            let part = [json!({"type": "text", "text": "An answer that is never whole."})];
            if is_stream {
                start_stream(stream)?;
                events(asked, &part, id)
                    .iter()
                    .take(4)
                    .try_for_each(|event| send(stream, event))?;
            }
            if matches!(reply, Reply::Stalled) {
                let state = shared.state.lock().unwrap();
                drop(shared.ended.wait_while(state, |state| !state.is_over).unwrap());
            }
            Ok(())
        }
    }
}

fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})
}

fn message(asked: &Value, id: u32) -> Value {
    json!({
        "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": asked["model"],
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 1200, "output_tokens": 1, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 800, "service_tier": "standard"},
    })
}

fn stop_reason(blocks: &[Value]) -> &'static str {
    let is_tool = |block: &Value| block["type"] == "tool_use";
    if blocks.iter().any(is_tool) { "tool_use" } else { "end_turn" }
}

/// A message as the events of a stream.
fn events(asked: &Value, blocks: &[Value], id: u32) -> Vec<Value> {
    let mut events = vec![json!({"type": "message_start", "message": message(asked, id)})];
    for (index, block) in blocks.iter().enumerate() {
        let is_text = block["type"] == "text";
        let mut start = block.clone();
        let full = if is_text {
            start["text"] = json!("");
            block["text"].as_str().unwrap_or_default().to_owned()
        } else {
            start["input"] = json!({});
            // An id may occur once in a conversation only.
            start["id"] = json!(format!("{}_{id}", block["id"].as_str().unwrap_or_default()));
            block["input"].to_string()
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        let letters: Vec<char> = full.chars().collect();
        for piece in letters.chunks(PIECE) {
            let piece: String = piece.iter().collect();
            let delta = if is_text {
                json!({"type": "text_delta", "text": piece})
            } else {
                json!({"type": "input_json_delta", "partial_json": piece})
            };
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta",
        "delta": {"stop_reason": stop_reason(blocks), "stop_sequence": null},
        "usage": {"output_tokens": 42}}));
    events.push(json!({"type": "message_stop"}));
    events
}

fn start_stream(stream: &TcpStream) -> io::Result<()> {
    let kind = "text/event-stream; charset=utf-8".to_owned();
    // In chunks, so that a connection that breaks is no end of the stream.
    head(stream, 200, &[("content-type", kind), ("transfer-encoding", "chunked".to_owned())])
}

fn send(mut stream: &TcpStream, event: &Value) -> io::Result<()> {
    let kind = event["type"].as_str().unwrap_or_default();
    let text = format!("event: {kind}\ndata: {event}\n\n");
    let mut chunk = format!("{:x}\r\n{text}\r\n", text.len());
    if kind == "message_stop" {
        chunk.push_str("0\r\n\r\n");
    }
    stream.write_all(chunk.as_bytes())
}

fn whole(
    mut stream: &TcpStream,
    status: u16,
    more: &[(&str, String)],
    body: &Value,
) -> io::Result<()> {
    let body = body.to_string();
    let mut headers = vec![
        ("content-type", "application/json".to_owned()),
        ("content-length", body.len().to_string()),
    ];
    headers.extend(more.iter().cloned());
    head(stream, status, &headers)?;
    stream.write_all(body.as_bytes())
}

fn head(mut stream: &TcpStream, status: u16, headers: &[(&str, String)]) -> io::Result<()> {
    let mut text = format!("HTTP/1.1 {status} scripted\r\nconnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    stream.write_all(text.as_bytes())
}
