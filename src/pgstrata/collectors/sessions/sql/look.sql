-- A row for the look itself, behind those of a sample, so that one that saw nothing is known, too. Parameters: how many
-- clients connect anew for each transaction, and seconds to sleep before it looks.
UNION ALL
SELECT to_char(extract(epoch FROM statement_timestamp()) + :'settle', 'FM9999999990.0000'), :'reconnects',
       'look', 0, '', '', '', '', '', '', ''
