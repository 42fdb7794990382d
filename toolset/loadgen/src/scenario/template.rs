//! Templates: strings with placeholders for an arrival's variables.

use serde_json::Value;

/// A template: a sequence of literal parts and placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Plain(usize),  // the value as text
    Quoted(usize), // the value as part of a JSON string
    Json(usize),   // the value as JSON, so that a number stays a number
}

/// A function that returns the index of the variable with a given name.
type VariableIndex<'a> = dyn FnMut(&str) -> Result<usize, String> + 'a;

impl Template {
    /// Parse a string with placeholders such as `$name`.
    pub fn text(text: &str, variable_index: &mut VariableIndex) -> Result<Self, String> {
        let mut template = Self::default();
        for piece in split_placeholders(text) {
            match piece {
                Piece::Literal(literal) => template.literal(literal),
                Piece::Name(name) => template.0.push(Part::Plain(variable_index(name)?)),
            }
        }
        Ok(template)
    }

    /// Parse a JSON document with placeholders in its strings. A string that consists of a single placeholder is
    /// replaced by the variable's JSON value.
    pub fn json(document: &Value, variable_index: &mut VariableIndex) -> Result<Self, String> {
        let mut template = Self::default();
        template.add(document, variable_index)?;
        Ok(template)
    }

    fn add(&mut self, document: &Value, variable_index: &mut VariableIndex) -> Result<(), String> {
        match document {
            Value::Object(members) => {
                for (index, (name, value)) in members.iter().enumerate() {
                    self.literal(if index == 0 { "{" } else { "," });
                    self.literal(Value::from(name.as_str()).to_string());
                    self.literal(":");
                    self.add(value, variable_index)?;
                }
                self.literal(if members.is_empty() { "{}" } else { "}" });
            }
            Value::Array(values) => {
                for (index, value) in values.iter().enumerate() {
                    self.literal(if index == 0 { "[" } else { "," });
                    self.add(value, variable_index)?;
                }
                self.literal(if values.is_empty() { "[]" } else { "]" });
            }
            Value::String(text) => self.string(text, variable_index)?,
            other => self.literal(other.to_string()),
        }
        Ok(())
    }

    fn string(&mut self, text: &str, variable_index: &mut VariableIndex) -> Result<(), String> {
        let pieces = split_placeholders(text);
        if let [Piece::Name(name)] = pieces[..] {
            self.0.push(Part::Json(variable_index(name)?));
            return Ok(());
        }
        self.literal("\"");
        for piece in pieces {
            match piece {
                Piece::Literal(literal) => self.literal(json_escape(literal)),
                Piece::Name(name) => self.0.push(Part::Quoted(variable_index(name)?)),
            }
        }
        self.literal("\"");
        Ok(())
    }

    fn literal(&mut self, text: impl AsRef<str>) {
        if let Some(Part::Literal(last)) = self.0.last_mut() {
            last.push_str(text.as_ref());
        } else {
            self.0.push(Part::Literal(text.as_ref().to_owned()));
        }
    }

    /// Append the template's text, with placeholders replaced by values.
    pub fn write(&self, values: &[Value], out: &mut String) {
        use std::fmt::Write;
        for part in &self.0 {
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::Plain(place) | Part::Quoted(place) | Part::Json(place) => match (part, &values[*place]) {
                    (Part::Plain(_), Value::String(text)) => out.push_str(text),
                    (Part::Quoted(_), Value::String(text)) => out.push_str(&json_escape(text)),
                    (_, value) => write!(out, "{value}").expect("writing to memory cannot fail"),
                },
            }
        }
    }
}

/// Escape a string for use within a JSON string.
fn json_escape(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'a> {
    Literal(&'a str),
    Name(&'a str),
}

/// Split a string at the placeholders. A name starts with a letter and continues with letters, digits and underscores;
/// any other dollar sign is literal.
fn split_placeholders(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut begin, mut at) = (0, 0);
    while let Some(dollar) = text[at..].find('$').map(|offset| at + offset) {
        let rest = &text[dollar + 1..];
        let length = rest.find(|character: char| !character.is_ascii_alphanumeric() && character != '_');
        let name = &rest[..length.unwrap_or(rest.len())];
        at = dollar + 1 + name.len();
        if name.starts_with(|character: char| character.is_ascii_alphabetic()) {
            if begin < dollar {
                pieces.push(Piece::Literal(&text[begin..dollar]));
            }
            pieces.push(Piece::Name(name));
            begin = at;
        }
    }
    if begin < text.len() || pieces.is_empty() {
        pieces.push(Piece::Literal(&text[begin..]));
    }
    pieces
}
