//! A scripted model: a provider like any other whose answers come from a file.

use std::path::Path;

use async_trait::async_trait;

use crate::chat::{ChatModel, ChatRequest, Completion, Delta, ModelError, ModelFacts};

/// A model that answers from a file (`model = "script:FILE"`).
#[derive(Debug)]
pub struct ScriptModel {}

impl ScriptModel {
    /// Reads the script.
    pub fn open(file: &Path) -> Result<Self, ModelError> {
        let _ = file;
        todo!()
    }
}

#[async_trait(?Send)]
impl ChatModel for ScriptModel {
    fn facts(&self) -> &ModelFacts {
        todo!()
    }

    async fn complete(
        &self,
        request: &ChatRequest,
        on_delta: &mut dyn FnMut(Delta<'_>),
    ) -> Result<Completion, ModelError> {
        let _ = (request, on_delta);
        todo!()
    }
}
