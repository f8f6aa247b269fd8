//! Files in which package managers pin versions. A build makes one where there is none.

use std::path::Path;

const LOCK_FILES: [&str; 35] = [
    ".terraform.lock.hcl",
    "Cargo.lock",
    "Chart.lock",
    "Gemfile.lock",
    "MODULE.bazel.lock",
    "Package.resolved",
    "Pipfile.lock",
    "Podfile.lock",
    "buf.lock",
    "bun.lock",
    "bun.lockb",
    "cabal.project.freeze",
    "composer.lock",
    "conan.lock",
    "deno.lock",
    "flake.lock",
    "gems.locked",
    "go.sum",
    "go.work.sum",
    "gradle.lockfile",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "packages.lock.json",
    "paket.lock",
    "pdm.lock",
    "pixi.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "pubspec.lock",
    "pylock.toml",
    "rebar.lock",
    "stack.yaml.lock",
    "uv.lock",
    "yarn.lock",
];

pub fn is_lock_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| LOCK_FILES.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_name_counts() {
        for (path, is_one) in [
            ("Cargo.lock", true),
            ("web/package-lock.json", true),
            ("go.sum", true),
            ("infra/.terraform.lock.hcl", true),
            ("MODULE.bazel.lock", true),
            ("stack.yaml.lock", true),
            ("gems.locked", true),
            ("pixi.lock", true),
            ("pylock.toml", true),
            ("buf.lock", true),
            ("my-Cargo.lock", false),
            ("Cargo.lock/x", false),
            ("index.lock", false),
            ("", false),
        ] {
            assert_eq!(is_lock_file(Path::new(path)), is_one, "{path}");
        }
    }
}
