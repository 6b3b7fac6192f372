SELECT count(*) FROM orders WHERE amount % 7 = 3;
