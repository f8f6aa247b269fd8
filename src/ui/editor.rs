//! The human's own editor, for guidance that is longer than a line.

use std::io;

use dialoguer::Editor;

use super::printer::env_var;

/// dialoguer takes the text whether the editor failed or not. So the file goes when it fails,
/// and there is nothing left to take. The editor gets the terminal, as the menu does, even where
/// standard input or output is a pipe.
const OR_NOTHING: &str = r#"for file; do :; done
[ -t 0 ] || exec </dev/tty
"$@" >&2 || rm -f -- "$file""#;

pub enum Edited {
    Text(String),
    /// Closed without saving.
    Nothing,
    /// The editor failed, or the human made it fail (`:cq`).
    Refused,
    Failed(String),
}

/// `$VISUAL`, else `$EDITOR`, else vi.
pub fn name() -> String {
    let names = ["VISUAL", "EDITOR"].into_iter().filter_map(env_var);
    let has_words = |command: &String| shlex::split(command).is_some_and(|words| !words.is_empty());
    names.into_iter().find(has_words).unwrap_or_else(|| "vi".to_owned())
}

pub fn edit() -> Edited {
    let Some(command) = command(&name()) else {
        return Edited::Failed("its name cannot be passed on".to_owned());
    };
    match Editor::new().executable(command).extension(".md").edit("") {
        Ok(Some(text)) => Edited::Text(text),
        Ok(None) => Edited::Nothing,
        Err(dialoguer::Error::IO(error)) if error.kind() == io::ErrorKind::NotFound => {
            Edited::Refused
        }
        Err(error) => Edited::Failed(error.to_string()),
    }
}

/// None for a name with a NUL in it.
fn command(editor: &str) -> Option<String> {
    let words = shlex::split(editor)?;
    let wrapped = ["sh", "-c", OR_NOTHING, "sh"].into_iter();
    shlex::try_join(wrapped.chain(words.iter().map(String::as_str))).ok()
}
