//! Plays scripts into memory and checks the output.

mod failures;
mod playing;
mod scripts;

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::script::{Scene, Script};
use super::{MockEnd, perform};

/// A temporary folder, a story and an attempt.
struct Stage {
    folder: tempfile::TempDir,
    story: &'static str,
    attempt: u32,
}

struct Played {
    ending: MockEnd,
    output: String,
}

fn stage() -> Stage {
    Stage { folder: tempfile::tempdir().unwrap(), story: "US-001", attempt: 1 }
}

impl Stage {
    fn scene(&self) -> Scene {
        let variable = |name: &str| match name {
            "RALPH_STORY" => Some(self.story.to_owned()),
            "RALPH_ATTEMPT" => Some(self.attempt.to_string()),
            "RALPH_ITERATION" => Some("7".to_owned()),
            _ => None,
        };
        Scene::new(variable, self.folder.path().to_owned()).unwrap()
    }

    fn play(&self, source: &str) -> Played {
        let mut scene = self.scene();
        scene.prompt = b"the prompt".to_vec();
        let script = Script::parse(Path::new("s.toml"), &scene.fill_in(source)).unwrap();
        let mut out = Vec::new();
        let ending = perform(&scene, &script.attempt(&scene), &mut out).unwrap();
        Played { ending, output: String::from_utf8(out).unwrap() }
    }

    fn steps(&self, steps: &str) -> Played {
        self.play(&format!("[default]\nsteps = [{steps}]\n"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
}

impl Played {
    fn events(&self) -> Vec<Value> {
        self.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// `type` or `type/subtype` of each event.
    fn kinds(&self) -> Vec<String> {
        let kind = |e: &Value| match (e["type"].as_str(), e["subtype"].as_str()) {
            (Some(kind), Some(subtype)) => format!("{kind}/{subtype}"),
            (kind, _) => kind.unwrap_or_default().to_owned(),
        };
        self.events().iter().map(kind).collect()
    }

    fn result(&self) -> Value {
        self.events().into_iter().rfind(|e| e["type"] == "result").unwrap_or_default()
    }

    /// The main agent's texts, as a driver reads them.
    fn texts(&self) -> Vec<String> {
        let main = |e: &&Value| {
            e["type"] == "assistant"
                && e["parent_tool_use_id"].is_null()
                && e["message"]["model"] != "<synthetic>"
        };
        let events = self.events();
        let blocks = events.iter().filter(main).map(|e| &e["message"]["content"][0]);
        blocks.filter_map(|b| b["text"].as_str()).map(str::to_owned).collect()
    }
}
