//! Variables of a use case that are drawn at random for each arrival.

use serde_json::Value;

use crate::random::Random;

/// Customers and items have ids from 1 to `IDS`.
const IDS: usize = 1000;
/// Maximum quantity of an item in an order.
const MAX_PIECES: usize = 5;
/// Number of possible card numbers: the digit 4 is followed by 15 random digits.
const CARD_DIGITS: u64 = 1_000_000_000_000_000;

/// The random value to draw for a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Customer, // id of a customer
    Card,     // number of a payment card, a string of 16 digits
    Item,     // id of an item, never repeated within an arrival
    Quantity, // number of units of an item
}

impl Source {
    /// Return the source of the variable with this name, such as `item2`. Return `None` for a captured variable.
    pub fn from_name(name: &str) -> Option<Self> {
        let stem = name.trim_end_matches(|character: char| character.is_ascii_digit());
        match stem {
            "customer" if stem == name => Some(Self::Customer),
            "card" => Some(Self::Card),
            "item" if stem != name => Some(Self::Item),
            "quantity" if stem != name => Some(Self::Quantity),
            _ => None,
        }
    }
}

/// The items already drawn for an arrival.
#[derive(Default)]
pub struct DrawnValues {
    items: Vec<usize>,
}

impl DrawnValues {
    /// Draw the next value. Items do not repeat within an arrival.
    pub fn draw(&mut self, source: Source, random: &mut Random) -> Value {
        match source {
            Source::Customer => (1 + random.below(IDS)).into(),
            Source::Quantity => (1 + random.below(MAX_PIECES)).into(),
            Source::Card => format!("4{:015}", random.bits() % CARD_DIGITS).into(),
            Source::Item => {
                let mut item = 1 + random.below(IDS);
                while self.items.contains(&item) && self.items.len() < IDS {
                    item = 1 + random.below(IDS);
                }
                self.items.push(item);
                item.into()
            }
        }
    }
}
