-- Files of the database; looking at all of them takes its time.
SELECT 'database.size', pg_database_size(current_database())::numeric
