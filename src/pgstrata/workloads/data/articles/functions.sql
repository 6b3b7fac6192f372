-- A whole number from lowest to highest for a place in a text, all as likely, the same whenever it is asked for.
CREATE FUNCTION article_draw(key bigint, lowest int, highest int) RETURNS int IMMUTABLE STRICT LANGUAGE sql AS $$
    SELECT lowest + (hashint8(key) & 2147483647) % (highest - lowest + 1)
$$;

-- A rank from 1 to 32767: each of 15 octaves is as likely, and so are the ranks of an octave. That is Zipf's law in steps,
-- and in whole numbers, which are the same on all machines.
CREATE FUNCTION article_rank(key bigint) RETURNS int IMMUTABLE STRICT LANGUAGE sql AS $$
    SELECT (1 << octave) + (hashint8(key + 1) & 2147483647) % (1 << octave) FROM (SELECT article_draw(key, 0, 14) AS octave) AS drawn
$$;

-- The word of a rank: two or three syllables, no two words the same.
CREATE FUNCTION article_word(rank int) RETURNS text IMMUTABLE STRICT LANGUAGE sql AS $$
    SELECT substr(consonants, rank % 80 / 5 + 1, 1) || substr(vowels, rank % 5 + 1, 1)
        || substr(consonants, rank / 80 % 80 / 5 + 1, 1) || substr(vowels, rank / 80 % 5 + 1, 1)
        || CASE WHEN rank >= 6400 THEN substr(consonants, rank / 6400 + 1, 1) || 'o' ELSE '' END
    FROM (SELECT 'bcdfghklmnprstvz'::text AS consonants, 'aeiou'::text AS vowels) AS letters
$$;
