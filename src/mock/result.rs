//! The `result` event: how an attempt ended and what it is said to have cost.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::step::Tokens;
use super::stream::{MODEL, Stream, Totals};

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
            "usage": totals.usage(), "modelUsage": totals.model_usage(),
            "permission_denials": totals.denials, "result_index": 0,
        });
        if let (Some(event), Value::Object(ending)) = (event.as_object_mut(), ending) {
            event.extend(ending);
        }
        self.event(event)
    }
}

impl Totals {
    fn tokens(&self) -> Tokens {
        let turns = self.turns;
        let plausible = Tokens {
            input: turns * INPUT,
            output: turns * OUTPUT,
            cache_read: turns * CACHED,
            cache_write: 0,
        };
        self.stated_tokens.unwrap_or(plausible)
    }

    fn usage(&self) -> Value {
        let tokens = self.tokens();
        json!({
            "input_tokens": tokens.input, "output_tokens": tokens.output,
            "cache_read_input_tokens": tokens.cache_read,
            "cache_creation_input_tokens": tokens.cache_write, "service_tier": "standard",
        })
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
