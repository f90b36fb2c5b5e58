//! The shape of an answer: which blocks of content it has.

use super::frame::Frame;
use crate::catalogue::BodyDef;
use crate::picture;
use serde::ser::Error;
use std::str;
use toolwarrant_base::bytes::{quote, quote_len};
use toolwarrant_base::json;
use toolwarrant_base::text::Json;

/// Writes a result, an object, in a frame. A body leaves as a block of its own after one with the
/// other fields, and without structured content: hosts drop text and pictures next to it. A frame
/// of plain JSON has the whole object.
pub(super) fn shape(json: Json, frame: Frame<'_>, body: Option<BodyDef>) -> serde_json::Result<Json> {
    if let Frame::Plain = frame {
        return Ok(json);
    }
    let Some(body) = body else { return Ok(write(&json, frame)) };
    let whole = str::from_utf8(&json.bytes).map_err(Error::custom)?;
    let members = json::members(whole).ok_or_else(|| Error::custom("a result with a body is no object"))?;
    let (mut rest, mut block) = (Json::with_capacity(json.bytes.len(), json.has_secret), None);
    rest.bytes.push(b'{');
    for (name, value) in members {
        if name == body.field {
            block = Some(item(value.get(), body.is_picture));
            continue;
        }
        if rest.bytes.len() > 1 {
            rest.bytes.push(b',');
        }
        serde_json::to_writer(&mut rest.bytes, &name)?;
        rest.bytes.push(b':');
        rest.bytes.extend_from_slice(value.get().as_bytes());
    }
    rest.bytes.push(b'}');
    let block = block.ok_or_else(|| Error::custom("the result lacks its body"))?;
    Ok(write(&rest, frame.with_body(&block)))
}

fn write(json: &Json, frame: Frame<'_>) -> Json {
    let bytes = frame.around(&json.bytes, quote_len(&json.bytes), |body| quote(&json.bytes, body));
    Json { bytes, has_secret: json.has_secret }
}

/// Takes a JSON string: the text, or a picture in base64.
fn item(value: &str, is_picture: bool) -> String {
    match is_picture {
        false => format!(r#",{{"type":"text","text":{value}}}"#),
        true => format!(r#",{{"type":"image","data":{value},"mimeType":"{}"}}"#, picture::media_type(value)),
    }
}
