//! The tokenizer by the letter of the standard, which ours is held against.

use super::Sink;
use super::tags::Tag;
use html5gum::Tokenizer;
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use std::convert::Infallible;

/// Tokenizes a whole page.
pub(crate) fn tokenize(html: &str, sink: &mut impl Sink) {
    let mut attribute: Vec<u8> = Vec::new();
    let mut in_attribute = false;
    let mut in_tag = false;
    let callback = |event: CallbackEvent<'_>, _: html5gum::Span<()>| -> Option<Infallible> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                in_tag = true;
                sink.open_tag(Tag::from_name(name), name);
            }
            // The attributes of end tags come as events too, before the end tag: they are nobody's.
            CallbackEvent::AttributeName { name } if in_tag => {
                if in_attribute && sink.wants(&attribute) {
                    sink.attribute(&attribute, "");
                }
                attribute.clear();
                attribute.extend_from_slice(name);
                in_attribute = true;
            }
            CallbackEvent::AttributeValue { value } if in_tag => {
                if in_attribute && sink.wants(&attribute) {
                    sink.attribute(&attribute, &String::from_utf8_lossy(value));
                }
                in_attribute = false;
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                if in_attribute && sink.wants(&attribute) {
                    sink.attribute(&attribute, "");
                }
                in_attribute = false;
                in_tag = false;
                sink.close_tag(self_closing);
            }
            CallbackEvent::EndTag { name } => {
                in_tag = false;
                in_attribute = false;
                sink.end_tag(Tag::from_name(name), name);
            }
            CallbackEvent::String { value } => sink.text(&String::from_utf8_lossy(value)),
            _ => {}
        }
        None
    };
    let mut emitter = CallbackEmitter::new(callback);
    emitter.naively_switch_states(true);
    let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
}
