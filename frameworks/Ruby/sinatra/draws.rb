# frozen_string_literal: true

require 'set'

# Random ids and numbers, and parsing of integer parameters.
module Draws
  ROWS = 10_000

  module_function

  # Returns a parameter as an integer clamped to +range+, or +fallback+ if it is missing or not an integer.
  def clamped(text, range, fallback)
    return fallback unless text.is_a?(String) && text.match?(/\A-?[0-9]+\z/)

    text.to_i.clamp(range)
  end

  def row = rand(1..ROWS)

  # Returns distinct ids in ascending order, so that concurrent updates cannot deadlock.
  def distinct_rows(count)
    ids = Set.new
    ids << row while ids.size < count
    ids.sort
  end

  # Returns a random number that differs from +old+, so that every update changes its row.
  def number_other_than(old)
    number = rand(1...ROWS)
    number < old ? number : number + 1
  end
end
