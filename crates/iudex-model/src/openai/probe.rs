//! Asks once whether the server enforces `response_format: json_schema`.
//!
//! The model is asked for one word and the schema allows only another, which no model would say by itself. Never: an
//! assumption; a server that takes the field and ignores it does not enforce.

use serde_json::{Value, json};

use super::OpenAiModel;
use crate::chat::{ChatRequest, Finish, Message, ModelError};

/// The word that only an enforced schema brings about.
const ODD_WORD: &str = "quokka-7319";

/// True when the answer fits the schema exactly.
pub(super) async fn enforces_schema(model: &OpenAiModel) -> Result<bool, ModelError> {
    // A model that reasons first may need more than the answer itself takes.
    for max_tokens in [32, 1024] {
        let completion = match model.ask(&request(max_tokens), &mut |_| {}).await {
            Ok(completion) => completion,
            Err(refusal) => match (&refusal.error, refusal.status) {
                (ModelError::FormatRefused(_), _) | (ModelError::Refused(_), Some(400 | 422 | 501)) => {
                    return Ok(false);
                }
                _ => return Err(refusal.error),
            },
        };
        if fits(&completion.text) {
            return Ok(true);
        }
        let still_reasoning = completion.finish == Finish::Length
            && completion.text.trim().is_empty()
            && !completion.reasoning.is_empty();
        if !still_reasoning {
            break;
        }
    }
    Ok(false)
}

fn request(max_tokens: u64) -> ChatRequest {
    ChatRequest {
        messages: vec![Message::User { text: "Say hello.".into() }],
        tools: Vec::new(),
        schema: Some(json!({
            "type": "object",
            "properties": {"word": {"type": "string", "enum": [ODD_WORD]}},
            "required": ["word"],
            "additionalProperties": false
        })),
        max_tokens,
        temperature: 0.0,
        seed: Some(1),
    }
}

fn fits(text: &str) -> bool {
    serde_json::from_str::<Value>(text.trim()).is_ok_and(|value| value == json!({"word": ODD_WORD}))
}
