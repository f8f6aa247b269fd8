//! Which files are tests, by their names.

const FOLDERS: [&str; 8] =
    ["__tests__", "__mocks__", "__snapshots__", "spec", "specs", "test", "testdata", "tests"];

/// By the conventions of common languages.
pub fn is_test(path: &str) -> bool {
    let path = path.to_lowercase();
    let mut parts = path.split('/').rev();
    let name = parts.next().unwrap_or_default();
    parts.any(|folder| FOLDERS.contains(&folder)) || is_test_name(name)
}

fn is_test_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let has_ending = name.split('.').skip(1).any(|part| ["test", "spec", "snap"].contains(&part));
    let has_word = stem.split(['_', '-']).any(|part| ["test", "tests", "spec"].contains(&part));
    has_ending || has_word || stem == "conftest" || is_class_of_tests(name, stem)
}

/// `LoginTest.java`, `LoginTests.cs`: languages with a class per file.
fn is_class_of_tests(name: &str, stem: &str) -> bool {
    let ending = name.rsplit('.').next().unwrap_or_default();
    ["java", "kt", "scala", "groovy", "cs", "swift", "php"].contains(&ending)
        && (stem.ends_with("test") || stem.ends_with("tests"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_recognised_by_their_names() {
        for path in [
            "tests/it/run.rs",
            "src/core/tests/mod.rs",
            "src/state/tests.rs",
            "pkg/login_test.go",
            "test_login.py",
            "web/src/login.test.tsx",
            "web/src/login.spec.ts",
            "web/__tests__/login.js",
            "web/__snapshots__/a.snap",
            "spec/login_spec.rb",
            "app/src/test/java/Login.java",
            "app/LoginTest.java",
            "App.Tests/LoginTests.cs",
            "conftest.py",
        ] {
            assert!(is_test(path), "{path}");
        }
        for path in [
            "src/login.rs",
            "src/latest.rs",
            "src/contest.java.txt",
            "src/attest.py",
            "docs/testing.md",
            "src/inspector.rs",
            "README.md",
            "",
        ] {
            assert!(!is_test(path), "{path}");
        }
    }
}
