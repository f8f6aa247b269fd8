//! Files in which package managers pin versions. A build makes one where there is none.

use std::path::Path;

const LOCK_FILES: [&str; 27] = [
    "Cargo.lock",
    "Gemfile.lock",
    "Package.resolved",
    "Pipfile.lock",
    "Podfile.lock",
    "bun.lock",
    "bun.lockb",
    "cabal.project.freeze",
    "composer.lock",
    "conan.lock",
    "deno.lock",
    "flake.lock",
    "go.sum",
    "go.work.sum",
    "gradle.lockfile",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "packages.lock.json",
    "paket.lock",
    "pdm.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "pubspec.lock",
    "rebar.lock",
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
            ("my-Cargo.lock", false),
            ("Cargo.lock/x", false),
            ("index.lock", false),
            ("", false),
        ] {
            assert_eq!(is_lock_file(Path::new(path)), is_one, "{path}");
        }
    }
}
