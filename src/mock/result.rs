//! The `result` event: how an attempt ended and what it is said to have cost.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::stream::{MODEL, Stream};

/// What a turn is said to have read and written, as plausible as any other number.
const INPUT: u64 = 1200;
const CACHED: u64 = 800;
const OUTPUT: u64 = 42;

impl<W: Write> Stream<W> {
    pub fn success(&mut self) -> io::Result<()> {
        let text = self.totals.last_text.clone();
        self.result(json!({
            "subtype": "success", "is_error": false, "terminal_reason": "completed",
            "stop_reason": "end_turn", "api_error_status": null, "result": text,
        }))
    }

    /// `ending` holds the fields in which one ending differs from another.
    pub fn result(&mut self, ending: Value) -> io::Result<()> {
        let took = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let totals = &self.totals;
        let mut event = json!({
            "type": "result", "num_turns": totals.stated_turns.unwrap_or(totals.turns.max(1)),
            "duration_ms": took, "duration_api_ms": took, "total_cost_usd": totals.cost,
            "usage": usage(totals.turns), "modelUsage": model_usage(totals.turns, totals.cost),
            "permission_denials": totals.denials, "result_index": 0,
        });
        if let (Some(event), Value::Object(ending)) = (event.as_object_mut(), ending) {
            event.extend(ending);
        }
        self.event(event)
    }
}

fn usage(turns: u64) -> Value {
    json!({
        "input_tokens": turns * INPUT, "output_tokens": turns * OUTPUT,
        "cache_read_input_tokens": turns * CACHED, "cache_creation_input_tokens": 0,
        "service_tier": "standard",
    })
}

/// Empty when the model was never reached, as with the real agent.
fn model_usage(turns: u64, cost: f64) -> Map<String, Value> {
    let used = json!({
        "inputTokens": turns * INPUT, "outputTokens": turns * OUTPUT,
        "cacheReadInputTokens": turns * CACHED, "cacheCreationInputTokens": 0,
        "costUSD": cost, "contextWindow": 1_000_000, "maxOutputTokens": 128_000,
    });
    (turns > 0).then(|| (MODEL.to_owned(), used)).into_iter().collect()
}
