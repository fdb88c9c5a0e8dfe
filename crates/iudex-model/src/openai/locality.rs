//! Whether a server is near and a model small, told by address and name alone.
//!
//! Never: a look-up on the network.

use std::net::IpAddr;

/// The most parameters of a small model, in billions.
const SMALL: f64 = 30.0;

/// Loopback: `localhost`, `*.localhost`, `127.0.0.0/8`, `::1`, and the unspecified address, which means this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    match host.parse::<IpAddr>() {
        Ok(address) => {
            let address = address.to_canonical();
            address.is_loopback() || address.is_unspecified()
        }
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Loopback, `*.local`, or a private or link-local address.
pub(crate) fn is_local(host: &str) -> bool {
    if is_loopback(host) {
        return true;
    }
    match host.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Ok(IpAddr::V4(address)) => address.is_private() || address.is_link_local(),
        Ok(IpAddr::V6(address)) => address.is_unique_local() || address.is_unicast_link_local(),
        Err(_) => host.trim_end_matches('.').to_ascii_lowercase().ends_with(".local"),
    }
}

/// Whether a base address is on this machine or in a private network.
pub fn is_local_address(base_url: &str) -> bool {
    reqwest::Url::parse(base_url).is_ok_and(|url| url.host_str().is_some_and(is_local))
}

/// Up to 30 billion parameters by its name; a model whose name does not tell is small on a local server.
pub(crate) fn is_small(name: &str, is_local: bool) -> bool {
    billions(name).map_or(is_local, |billions| billions <= SMALL)
}

/// The billions of parameters that a name tells: `0.5B`, `1.5b`, `8x7b` (all experts count), `135m`.
pub(crate) fn billions(name: &str) -> Option<f64> {
    let name = name.to_ascii_lowercase();
    let words = || name.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.'));
    let large = words().find_map(|word| {
        let number = word.trim_end_matches(".gguf").strip_suffix('b')?;
        match number.split_once('x') {
            Some((experts, size)) => Some(amount(experts)? * amount(size)?),
            None => amount(number),
        }
    });
    // A million of something may also be the window (`1m`), so few millions tell nothing.
    let tiny = || {
        words().find_map(|word| {
            let millions = amount(word.trim_end_matches(".gguf").strip_suffix('m')?)?;
            (millions >= 20.0).then_some(millions / 1000.0)
        })
    };
    large.or_else(tiny)
}

fn amount(text: &str) -> Option<f64> {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit()) && text.ends_with(|c: char| c.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart() {
        for host in ["127.0.0.1", "127.8.9.1", "localhost", "LOCALHOST", "api.localhost", "::1", "0.0.0.0"] {
            assert!(is_loopback(host) && is_local(host), "{host}");
        }
        for host in ["10.0.0.7", "172.16.0.1", "172.31.255.1", "192.168.1.20", "fd00::1", "fe80::1", "nas.local"] {
            assert!(!is_loopback(host) && is_local(host), "{host}");
        }
        for host in ["8.8.8.8", "172.32.0.1", "api.example.com", "localhost.example.com", "2001:db8::1", "local"] {
            assert!(!is_local(host), "{host}");
        }
        assert!(is_loopback("::ffff:127.0.0.1"));
    }

    #[test]
    fn sizes_are_read_from_names() {
        let cases = [
            ("Qwen2.5-Coder-0.5B-Instruct", Some(0.5)),
            ("qwen2.5-coder:1.5b-instruct-q4_K_M", Some(1.5)),
            ("/models/Qwen2.5-Coder-1.5B.gguf", Some(1.5)),
            ("mixtral:8x7b", Some(56.0)),
            ("qwen3-30b-a3b", Some(30.0)),
            ("Llama-3.3-70B-Instruct", Some(70.0)),
            ("smollm2:135m", Some(0.135)),
            ("qwen2.5-7b-instruct-1m", Some(7.0)),
            ("gpt-4.1", None),
            ("model-4bit", None),
            ("big-1m", None),
            ("b", None),
        ];
        for (name, expected) in cases {
            assert_eq!(billions(name), expected, "{name}");
        }
    }

    #[test]
    fn thirty_billions_are_small_and_unknown_is_small_only_near() {
        assert!(is_small("x-30b", false));
        assert!(!is_small("x-32b", true));
        assert!(is_small("mystery", true));
        assert!(!is_small("mystery", false));
        assert!(!is_small("mixtral-8x7b", true));
    }
}
