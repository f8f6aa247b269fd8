//! See `ralph::cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(ralph::cli::main(std::env::args_os()))
}
