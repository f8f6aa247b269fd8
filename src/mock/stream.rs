//! Writes what the agent says: Claude Code's stream-json, or plain text.
//!
//! Owns the shape of every event and the order of their ids. It never decides what is said.

use std::io::{self, Write};
use std::time::Instant;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::model::{Tokens, millis, unique_id};

pub const MODEL: &str = "mock";
/// Plausible numbers of tokens that a turn read and wrote.
const INPUT: u64 = 1200;
const CACHED: u64 = 800;
const OUTPUT: u64 = 42;

pub struct Stream<'a> {
    out: &'a mut dyn Write,
    /// Plain text instead of events.
    pub plain: bool,
    session: String,
    last_id: u32,
    started: Instant,
    pub totals: MockTotals,
}

/// What the result event will say.
#[derive(Default)]
pub struct MockTotals {
    pub turns: u64,
    pub stated_turns: Option<u64>,
    pub stated_tokens: Option<Tokens>,
    pub model: Option<String>,
    pub cost: f64,
    pub last_text: String,
    pub denials: Vec<Value>,
}

impl<'a> Stream<'a> {
    pub fn new(out: &'a mut dyn Write, plain: bool) -> Self {
        Self {
            out,
            plain,
            session: unique_id(Timestamp::now().as_nanosecond()),
            last_id: 0,
            started: Instant::now(),
            totals: MockTotals::default(),
        }
    }

    pub fn init(&mut self, folder: &str) -> io::Result<()> {
        self.event(json!({
            "type": "system", "subtype": "init", "cwd": folder, "model": MODEL,
            "claude_code_version": MODEL, "permissionMode": "bypassPermissions", "apiKeySource": "none",
            "tools": ["Bash", "Edit", "Read", "Write"], "mcp_servers": [], "slash_commands": [],
            "agents": [], "skills": [], "plugins": [], "output_style": "default",
        }))
    }

    /// The main agent's own words.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        if self.plain {
            return self.line(text.as_bytes());
        }
        text.clone_into(&mut self.totals.last_text);
        self.assistant(json!({ "type": "text", "text": text }), None)
    }

    pub fn thinking(&mut self, thought: &str) -> io::Result<()> {
        let block = json!({ "type": "thinking", "thinking": thought, "signature": "bW9jaw==" });
        self.assistant(block, None)
    }

    pub fn subagent(&mut self, text: &str) -> io::Result<()> {
        let parent = self.next_id("toolu");
        self.assistant(json!({ "type": "text", "text": text }), Some(parent))
    }

    /// Announces a tool call, and returns its id.
    pub fn tool_use(&mut self, tool: &str, input: &Value) -> io::Result<String> {
        let id = self.next_id("toolu");
        let block = json!({ "type": "tool_use", "id": id, "name": tool, "input": input });
        self.assistant(block, None)?;
        Ok(id)
    }

    pub fn event(&mut self, mut event: Value) -> io::Result<()> {
        if self.plain {
            return Ok(());
        }
        let uuid = unique_id(Timestamp::now().as_nanosecond());
        extend(&mut event, json!({ "session_id": self.session, "uuid": uuid }));
        self.line(&serde_json::to_vec(&event)?)
    }

    /// One line in one write, so that a live display never waits for the rest of an event.
    pub fn line(&mut self, text: &[u8]) -> io::Result<()> {
        self.bytes(&[text, b"\n"].concat())?;
        self.out.flush()
    }

    /// For lines that are too large for one write.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    fn next_id(&mut self, kind: &str) -> String {
        self.last_id += 1;
        format!("{kind}_mock_{}", self.last_id)
    }

    pub fn success(&mut self) -> io::Result<()> {
        let text = self.totals.last_text.clone();
        self.result(json!({
            "subtype": "success", "is_error": false, "terminal_reason": "completed",
            "stop_reason": "end_turn", "api_error_status": null, "result": text,
        }))
    }

    /// `ending` has the fields in which one ending differs from another.
    pub fn result(&mut self, ending: Value) -> io::Result<()> {
        let took = millis(self.started.elapsed());
        let (totals, tokens) = (&self.totals, self.totals.tokens());
        let mut event = json!({
            "type": "result", "num_turns": totals.stated_turns.unwrap_or(totals.turns.max(1)),
            "duration_ms": took, "duration_api_ms": took, "total_cost_usd": totals.cost,
            "usage": {
                "input_tokens": tokens.input, "output_tokens": tokens.output,
                "cache_read_input_tokens": tokens.cache_read,
                "cache_creation_input_tokens": tokens.cache_write, "service_tier": "standard",
            },
            "modelUsage": totals.model_usage(), "permission_denials": totals.denials,
            "result_index": 0,
        });
        extend(&mut event, ending);
        self.event(event)
    }

    fn assistant(&mut self, block: Value, parent: Option<String>) -> io::Result<()> {
        self.totals.turns += u64::from(parent.is_none());
        let (message, request) = (self.next_id("msg"), self.next_id("req"));
        self.event(json!({
            "type": "assistant",
            "message": {
                "id": message, "type": "message", "role": "assistant", "model": MODEL,
                "content": [block], "stop_reason": null, "stop_sequence": null,
                "usage": { "input_tokens": INPUT, "output_tokens": 1,
                           "cache_read_input_tokens": CACHED, "cache_creation_input_tokens": 0 },
            },
            "parent_tool_use_id": parent, "request_id": request, "timestamp": timestamp(),
        }))
    }
}

impl MockTotals {
    fn tokens(&self) -> Tokens {
        let [input, output, cache_read] =
            [INPUT, OUTPUT, CACHED].map(|of_turn| self.turns * of_turn);
        self.stated_tokens.unwrap_or(Tokens { input, output, cache_read, cache_write: 0 })
    }

    /// Empty when the model was never reached, as with the real agent.
    fn model_usage(&self) -> Map<String, Value> {
        let tokens = self.tokens();
        let used = json!({
            "inputTokens": tokens.input, "outputTokens": tokens.output,
            "cacheReadInputTokens": tokens.cache_read,
            "cacheCreationInputTokens": tokens.cache_write, "costUSD": self.cost,
            "contextWindow": 1_000_000, "maxOutputTokens": 128_000,
        });
        let model = self.model.clone().unwrap_or_else(|| MODEL.to_owned());
        let was_reached = self.turns > 0 || self.stated_tokens.is_some();
        was_reached.then_some((model, used)).into_iter().collect()
    }
}

pub fn tool_result(id: &str, outcome: &Result<String, String>) -> Value {
    let (content, detail) = match outcome {
        Ok(text) => (text, json!({ "stdout": text, "stderr": "", "interrupted": false })),
        Err(text) => (text, json!(format!("Error: {text}"))),
    };
    json!({
        "type": "user",
        "message": { "role": "user", "content": [{
            "type": "tool_result", "tool_use_id": id, "content": content, "is_error": outcome.is_err(),
        }] },
        "parent_tool_use_id": null, "tool_use_result": detail, "timestamp": timestamp(),
    })
}

/// Adds the fields of one object to another.
pub fn extend(event: &mut Value, more: Value) {
    if let (Some(fields), Value::Object(more)) = (event.as_object_mut(), more) {
        fields.extend(more);
    }
}

pub fn timestamp() -> String {
    format!("{:.3}", Timestamp::now())
}
