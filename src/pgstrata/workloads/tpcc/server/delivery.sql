SELECT tpcc_delivery(:w, :carrier);
@think5@
