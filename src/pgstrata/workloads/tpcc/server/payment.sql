SELECT tpcc_payment(:w, :d, :cw, :cd, CASE WHEN :named <= 60 THEN tpcc_find_customer(:cw, :cd, tpcc_last_name(:name)) ELSE :c END, :amount::numeric / 100);
@think12@
