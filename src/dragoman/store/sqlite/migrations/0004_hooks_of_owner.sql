-- How many hooks an owner has is asked before there is one more.

CREATE INDEX hooks_of_owner ON hooks (owner);
