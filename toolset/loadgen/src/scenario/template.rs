//! Texts with places for an arrival's values.

use serde_json::Value;

/// Literal parts, and places for values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Plain(usize),  // the value's text
    Quoted(usize), // its text within a JSON string
    Json(usize),   // the value as JSON: a number stays one
}

/// The place of a variable by its name.
type Places<'a> = dyn FnMut(&str) -> Result<usize, String> + 'a;

impl Template {
    /// A text in which `$name` is a place.
    pub fn text(text: &str, places: &mut Places) -> Result<Self, String> {
        let mut made = Self::default();
        for piece in pieces(text) {
            match piece {
                Piece::Literal(literal) => made.literal(literal),
                Piece::Name(name) => made.0.push(Part::Plain(places(name)?)),
            }
        }
        Ok(made)
    }

    /// A JSON document whose strings have places; a string that is one place becomes what the value is.
    pub fn json(document: &Value, places: &mut Places) -> Result<Self, String> {
        let mut made = Self::default();
        made.add(document, places)?;
        Ok(made)
    }

    fn add(&mut self, document: &Value, places: &mut Places) -> Result<(), String> {
        match document {
            Value::Object(members) => {
                for (index, (name, value)) in members.iter().enumerate() {
                    self.literal(if index == 0 { "{" } else { "," });
                    self.literal(Value::from(name.as_str()).to_string());
                    self.literal(":");
                    self.add(value, places)?;
                }
                self.literal(if members.is_empty() { "{}" } else { "}" });
            }
            Value::Array(values) => {
                for (index, value) in values.iter().enumerate() {
                    self.literal(if index == 0 { "[" } else { "," });
                    self.add(value, places)?;
                }
                self.literal(if values.is_empty() { "[]" } else { "]" });
            }
            Value::String(text) => self.string(text, places)?,
            other => self.literal(other.to_string()),
        }
        Ok(())
    }

    fn string(&mut self, text: &str, places: &mut Places) -> Result<(), String> {
        let found = pieces(text);
        if let [Piece::Name(name)] = found[..] {
            self.0.push(Part::Json(places(name)?));
            return Ok(());
        }
        self.literal("\"");
        for piece in found {
            match piece {
                Piece::Literal(literal) => self.literal(within_quotes(literal)),
                Piece::Name(name) => self.0.push(Part::Quoted(places(name)?)),
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

    /// Append the text with these values.
    pub fn write(&self, values: &[Value], out: &mut String) {
        use std::fmt::Write;
        for part in &self.0 {
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::Plain(place) | Part::Quoted(place) | Part::Json(place) => match (part, &values[*place]) {
                    (Part::Plain(_), Value::String(text)) => out.push_str(text),
                    (Part::Quoted(_), Value::String(text)) => out.push_str(&within_quotes(text)),
                    (_, value) => write!(out, "{value}").expect("memory takes what is written"),
                },
            }
        }
    }
}

/// A text as it stands within a JSON string.
fn within_quotes(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'a> {
    Literal(&'a str),
    Name(&'a str),
}

/// A name begins with a letter and goes on with letters, digits and underscores; another dollar is just that.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let (mut begin, mut at) = (0, 0);
    while let Some(dollar) = text[at..].find('$').map(|offset| at + offset) {
        let rest = &text[dollar + 1..];
        let length = rest.find(|character: char| !character.is_ascii_alphanumeric() && character != '_');
        let name = &rest[..length.unwrap_or(rest.len())];
        at = dollar + 1 + name.len();
        if name.starts_with(|character: char| character.is_ascii_alphabetic()) {
            if begin < dollar {
                found.push(Piece::Literal(&text[begin..dollar]));
            }
            found.push(Piece::Name(name));
            begin = at;
        }
    }
    if begin < text.len() || found.is_empty() {
        found.push(Piece::Literal(&text[begin..]));
    }
    found
}
