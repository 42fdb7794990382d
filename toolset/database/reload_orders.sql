-- Takes the orders out of a database that somebody else runs, their items with them, with no more than the role's rights:
-- the identity goes on where it was.
DELETE FROM orders;
