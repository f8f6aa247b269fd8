//! What can be typed about the prompt.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::core::id::StoryId;

#[derive(Debug, Args)]
#[command(
    about = "Print what an agent would get to read now",
    long_about = "Print what an agent would get to read now, for one story.\n\n\
        It is the prompt that the next attempt at the story would be given: instructions, story, \
        where the run stands, what earlier agents left and learnt, your guidance, and how to \
        finish. The text goes to standard output, the size of each layer to standard error. \
        Changes nothing, and works with and without a run.",
    after_help = "Examples:\n  \
        ralph prompt US-003\n  \
        ralph prompt US-003 plans/auth.json > prompt.md\n  \
        ralph prompt US-003 --json | jq .layers"
)]
pub struct PromptArgs {
    /// The story
    #[arg(value_name = "STORY")]
    pub story: StoryId,
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// Other instructions, as `ralph run --prompt` takes them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub prompt: Option<PathBuf>,
    /// Text and sizes as JSON, on standard output
    #[arg(long)]
    pub json: bool,
}
