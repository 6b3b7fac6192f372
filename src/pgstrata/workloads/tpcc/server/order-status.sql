SELECT tpcc_order_status(:w, :d, CASE WHEN :named <= 60 THEN tpcc_find_customer(:w, :d, tpcc_last_name(:name)) ELSE :c END);
@think10@
