//! Secrets that only a name shows: each shape of a file that has them, and the same shape with
//! what is none.

use super::{hex, mixed, redacted};

const PASSWORD: &str = "tR9!vm4#Lw2";

/// The kind, an example, and a similar text that must be kept.
pub fn named() -> Vec<(&'static str, String, String)> {
    let (value, id) = (mixed(24), "550e8400-e29b-41d4-a716-446655440000");
    let both = |kind, text: &str, other: &str| {
        let secret = if kind == "password" { PASSWORD } else { &value };
        (kind, text.replace('@', secret), text.replace('@', other))
    };
    let mut all = assignments(both);
    all.extend(spellings(both));
    all.extend(passwords());
    all.extend(
        [
            ("client-secret", "client_secret: @", id, "$CLIENT_SECRET"),
            ("x-api-key", "X-Api-Key: @", &value, "<your key>"),
            ("authorization", "Authorization: Token @", &value, "Token"),
            ("authorization", "\"Authorization\": \"@\"", &value, "required"),
            ("authorization", "authorization = ApiKey @", &value, "Bearer authentication-scheme"),
            ("curl-password", "curl -u me:@ https://example.org", "sesamstreet", "$PASSWORD"),
            ("curl-password", "curl --user 'me:@' 'https://h'", "opensesam", "password"),
            ("curl-password", "curl https://h -u \"me:@\"", PASSWORD, "me"),
            ("curl-password", "docker run -u me:@ image", PASSWORD, "1000"),
            ("netrc-password", "machine h login me password @", "opensesam", "<password>"),
            ("netrc-password", "machine h\n  login me\n  password @\n", "opensesam", "$PASSWORD"),
        ]
        .map(|(kind, text, secret, other)| {
            let kind = match kind {
                "client-secret" => "secret",
                "x-api-key" => "api-key",
                kind => kind,
            };
            (kind, text.replace('@', secret), text.replace('@', other))
        }),
    );
    all
}

fn assignments(
    both: impl Fn(&'static str, &str, &str) -> (&'static str, String, String),
) -> Vec<(&'static str, String, String)> {
    vec![
        // Environments and shells.
        both("password", "DB_PASSWORD=@", "changeme1234"),
        both("password", "export PGPASSWORD='@'", "$(cat /run/secrets/db)"),
        both("password", "mysql --password=@ -h db", "\"$PASSWORD\""),
        both("password", "SSH_PASSPHRASE=\"@\"", "${PASSPHRASE}"),
        both("api-key", "SERVICE_API_KEY=@", "your-api-key-here"),
        both("api-key", "SIGNING_KEY=@", "<insert key>"),
        both("token", "DEPLOY_TOKEN=@", "xxxxxxxxxxxxxxxxxxxxxxxx"),
        both("token", "//registry.npmjs.org/:_authToken=@", "${NPM_TOKEN}"),
        both("secret", "set -x SESSION_SECRET; SESSION_SECRET=@", "/run/secrets/session"),
        // YAML.
        both("password", "password: @", "required"),
        both("password", "  spring.datasource.password: \"@\"", "Passwort123"),
        both("secret", "- secret: '@' # of the app", "my-tls-secret"),
        both("api-key", "api_key:   @", "!vault production/api-keys"),
        both("token", "auth_token: @", "{{ vault_token }}"),
        // JSON.
        both("password", "{\"password\": \"@\"}", "Enter your password, at least 8 characters"),
        both("secret", "{\"client_secret\":\"@\"}", "string"),
        both("api-key", "{\"apiKey\": \"@\"}", "process.env.API_KEY"),
        both("token", "{\"accessToken\": \"@\"}", "tokens.access.label"),
        both("token", "refreshToken: '@'", "tokens.refresh.label"),
        // TOML and ini.
        both("password", "password = \"@\"", "Test1234!"),
        both("password", "passwd=@", "********"),
        both("secret", "secret_key = '@'", "example-secret-key-1234"),
        both("api-key", "api-key = @", "%(default_api_key)s"),
        // Programs.
        both("password", "let password = \"@\";", "Str0ngP@ssw0rd!"),
        both("password", "connect(password='@', user=u)", "{self.password}"),
        both("password", "$config['password'] = '@';", "sha512"),
        both("password", ":password => '@'", "current_user2.password"),
        both("secret", "const clientSecret = `@`;", "${secret}"),
        both("api-key", "https://h/v1?api_key=@&q=1", "{api_key}"),
    ]
}

/// Other spellings of a name, and other places of a value.
fn spellings(
    both: impl Fn(&'static str, &str, &str) -> (&'static str, String, String),
) -> Vec<(&'static str, String, String)> {
    let id = "550e8400-e29b-41d4-a716-446655440000";
    vec![
        both("api-key", "X-API-Key: @", "<your key>"),
        both("api-key", "\"API-Key\": \"@\"", "string"),
        both("api-key", "APIKey: \"@\",", "$API_KEY"),
        both("api-key", "DD_APIKEY=@", "your-api-key-here"),
        both("api-key", "encryption_key: @", "{{ encryption_key }}"),
        both("api-key", "{\"signingKey\": \"@\"}", "process.env.SIGNING_KEY"),
        both("api-key", "private_key = \"@\"", "/etc/tls/private1.key"),
        both("api-key", "accessKey: \"@\"", "storage.access.key"),
        both("api-key", "const API_KEY: string = \"@\";", "your-key"),
        both("api-key", "let api_key: &str = \"@\";", "example-key-1234"),
        both("api-key", "static API_KEY: &'static str = \"@\";", "${KEY}"),
        both("secret", "SECRET_KEY_BASE=@", "changeme1234"),
        both("password", "PASSWORD1=@", "$PASSWORD2"),
        both("api-key", "API_KEY_PROD=@", "<key>"),
        both("api-key", "ENCRYPTION_KEY_V2: @", "none"),
        both("api-key", "key=${API_KEY:-@}", "your-api-key-here"),
        both("token", "- name: API_TOKEN\n  value: \"@\"", "$(API_TOKEN)"),
        both("token", "{\"name\":\"API_TOKEN\",\"value\":\"@\"}", "string"),
        both("secret", "ENV API_KEY @", "${API_KEY}"),
        both("secret", "set -gx API_TOKEN @", "$argv"),
        both("authorization", "Authorization: Token token=\"@\"", "your-token"),
        both("api-key", "STRIPE_KEY=@", "pk_live_51H8x9yKJ2mN5pR7tW4xZ9bC"),
        both(
            "secret",
            "secret: \"@\"",
            "arn:aws:secretsmanager:eu-1:123456789012:secret:Db-a1b2c3",
        ),
        both("api-key", "SERVICE_KEY=@", &format!("x\nIDEMPOTENCY_KEY={id}")),
        ("aws-access-key", "AKIAQ7RTWXKP4ZSLD2VF".into(), "AKIAIOSFODNN7EXAMPLE".into()),
    ]
}

/// Where only data can stand, a password need not look random.
fn passwords() -> Vec<(&'static str, String, String)> {
    [
        ("password", "DB_PASSWORD=@", "purple-monkey-dishwasher", "example"),
        ("password", "DB_PASSWORD=@", "sunshine99", "settings.db_password"),
        ("password", "export SMTP_PASSWORD='@'", "qwxzplkvbnmrtyue", "my-secret-pw"),
        ("password", "  DB_PASSWORD: @\n", "MyDogRex2019", "string"),
        ("password", "  DB_PASSWORD: @\n", "blue-monkey", "Passwortfeld"),
        ("password", "MYSQL_PASSWORD=@", "opensesame", "DEFAULT_PASSWORD_2"),
        ("password", "db_password=@\nb=2", "sunshine99", "opensesame"),
        ("password", "  password: @\n", "sunshine99", "wachtwoord"),
        ("password", "passwd=@\n", "monkey-house-7", "user.password2"),
        ("secret", "SESSION_SECRET=@", "keyboard-cat", "my-secret"),
        ("secret", "SESSION_SECRET: @\n", "opensesame", "string"),
        ("curl-password", "curl -su me:@ https://h", "opensesam", "$PASSWORD"),
        ("curl-password", "curl -ume:@ https://h", "opensesam", "password"),
        ("curl-password", "curl --proxy-user me:@ https://h", "opensesam", "<password>"),
        ("netrc-password", "machine h login me account x password @", "opensesam", "$PASSWORD"),
        ("netrc-password", "machine h password @ login me", "opensesam", "<password>"),
    ]
    .map(|(kind, text, secret, other)| (kind, text.replace('@', secret), text.replace('@', other)))
    .into()
}

#[test]
fn names_of_what_everybody_may_know_are_kept() {
    let value = mixed(24);
    for text in [
        "PUBLISHABLE_KEY=@",
        "VAPID_PUBLIC_KEY=@",
        "CACHE_KEY=@",
        "IDEMPOTENCY_KEY=@",
        "next_page_token: \"@\"",
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "DB_PASSWORD: passwordSchema,\nFORGOT_PASSWORD: Vergessen\nRESET_PASSWORD=Zurücksetzen",
        "a machine that needs a password to login",
    ] {
        let text = text.replace('@', &value);
        assert_eq!(redacted(&text), text);
    }
}

#[test]
fn code_and_words_with_such_names_are_kept() {
    let number = hex(40);
    for text in [
        "password = get_password(user1, \"a1b2c3d4\")",
        "password = self.config2.read1().password",
        "fn sign(secret: &SecretKey2<P256>, api_key: Option<String>)",
        "let secret = secret::Key1a2b3c::new();",
        "password: string; passwd?: string; client_secret!: string",
        "{\"password\": \"Passwort\", \"confirm_password\": \"Passwort bestätigen\"}",
        "error: password is too short: 4 of 12 characters",
        "login(password=hunter2024, user=u)\nsecret: db2-tls-certificate-2024\n",
        "PRIMARY_KEY=user_id FOREIGN_KEY=order_id CACHE_KEY=users-by-name",
        "password=\"\" secret='' api_key= token_type=bearer MAX_TOKEN=4096",
        "API_KEY=sk-1234567890abcdef TOKEN_URL=https://h/oauth2/v2.0/token",
        "secret: at-least-32-characters-long, password_hash, secretName: db2-tls-1",
        "sudo -u postgres psql, rsync -u host:backup/2024-01 . , docker exec -u 1000:1000 web",
        "arn:aws:secretsmanager:eu-1:123456789012:secret:Db-a1b2c3",
        "Please login again. login me\nand then the password",
        "Authorization: ",
        &format!("commit secret {number}"),
    ] {
        assert_eq!(redacted(text), text);
    }
}

#[test]
fn only_the_value_is_redacted() {
    for (text, left) in [
        (r#"{"a":"DB_PASSWORD=@\nB=2"}"#, r#"{"a":"DB_PASSWORD=[redacted:password]\nB=2"}"#),
        (
            r#"{\\"password\\": \\"@\\", "b": 2}"#,
            r#"{\\"password\\": \\"[redacted:password]\\", "b": 2}"#,
        ),
        ("password: @ # mine", "password: [redacted:password] # mine"),
        ("f(password=@, b)", "f(password=[redacted:password], b)"),
        ("a?password=@&b=2", "a?password=[redacted:password]&b=2"),
        ("Password=@;Server=s", "Password=[redacted:password];Server=s"),
    ] {
        assert_eq!(redacted(&text.replace('@', "tR9.vm4_Lw2Z8k3")), left);
    }
}
