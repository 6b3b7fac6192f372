SELECT tpcc_stock_level(:w, :d, :few);
@think5@
