//! Values that are drawn for an arrival.

use serde_json::Value;

use super::UseCase;
use crate::arrivals::Random;

/// Customers and items have ids from 1 to this.
const IDS: usize = 1000;
/// The most pieces of an item.
const MOST_PIECES: usize = 5;
/// Digits of a card after the first.
const CARD_DIGITS: u64 = 1_000_000_000_000_000;

/// What a drawn variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Customer, // an id of a customer
    Card,     // the number of a payment card: a text of 16 digits
    Item,     // an id of an item, another for each variable of an arrival
    Quantity, // A number of pieces
}

impl Source {
    /// By the name of a variable: `customer`, `item2`; None for one that has to be captured.
    pub fn of(name: &str) -> Option<Self> {
        let word = name.trim_end_matches(|character: char| character.is_ascii_digit());
        match word {
            "customer" if word == name => Some(Self::Customer),
            "card" => Some(Self::Card),
            "item" if word != name => Some(Self::Item),
            "quantity" if word != name => Some(Self::Quantity),
            _ => None,
        }
    }
}

impl UseCase {
    /// The variables of an arrival; null what is captured later.
    pub fn draw(&self, random: &mut Random) -> Vec<Value> {
        let mut values: Vec<Value> = Vec::with_capacity(self.variables.len());
        let mut items: Vec<usize> = Vec::new();
        for variable in &self.variables {
            values.push(match variable.source {
                None => Value::Null,
                Some(Source::Customer) => (1 + random.below(IDS)).into(),
                Some(Source::Quantity) => (1 + random.below(MOST_PIECES)).into(),
                Some(Source::Card) => format!("4{:015}", random.bits() % CARD_DIGITS).into(),
                Some(Source::Item) => {
                    let mut item = 1 + random.below(IDS);
                    while items.contains(&item) && items.len() < IDS {
                        item = 1 + random.below(IDS);
                    }
                    items.push(item);
                    item.into()
                }
            });
        }
        values
    }
}
