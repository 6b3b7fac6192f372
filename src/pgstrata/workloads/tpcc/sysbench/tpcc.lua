-- The five transactions for sysbench 1.0.20: the statements of the folder client, drawn as in the folder draws.
-- Results that a later statement needs are asked for as text, because sysbench gets those of prepared statements in
-- binary form; and its whole numbers are of the type bigint, which functions of ours do not take.

sysbench.cmdline.options = {
   scale = {"Number of warehouses", 1},
   access = {"Distribution of items and customers: standard, uniform, pareto", "standard"},
}

local uniform = sysbench.rand.uniform

-- Clause 2.1.6, with the constants of the scripts of pgbench.
local function nurand(a, c, most)
   return (bit.bor(uniform(0, a), uniform(1, most)) + c) % most + 1
end

local ITEMS = {
   standard = function() return nurand(8191, 5849, 100000) end,
   uniform = function() return uniform(1, 100000) end,
   pareto = function() return sysbench.rand.pareto(1, 100000) end,
}

local CUSTOMERS = {
   standard = function() return nurand(1023, 867, 3000) end,
   uniform = function() return uniform(1, 3000) end,
   pareto = function() return sysbench.rand.pareto(1, 3000) end,
}

-- i stands for a whole number, t for a text that an earlier statement returned.
local STATEMENTS = {
   begin = {"BEGIN", ""},
   commit = {"COMMIT", ""},
   rollback = {"ROLLBACK", ""},
   rates = {"SELECT c_discount, w_tax FROM customer JOIN warehouse ON w_id = c_w_id WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", "iii"},
   number = {"UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ? RETURNING (d_next_o_id - 1)::text AS o, d_tax AS tax", "ii"},
   order = {"INSERT INTO orders VALUES (?, ?, ?, ?, now(), NULL, ?, ?)", "iiiiii"},
   new_order = {"INSERT INTO new_order VALUES (?, ?, ?)", "iii"},
   price = {"SELECT i_price::text AS price FROM item WHERE i_id = ?", "i"},
   stock = {"UPDATE stock SET s_quantity = CASE WHEN s_quantity >= ? + 10 THEN s_quantity - ? ELSE s_quantity - ? + 91 END, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + (? <> ?)::int WHERE s_w_id = ? AND s_i_id = ?", "iiiiiiii"},
   line = {"INSERT INTO order_line SELECT ?, ?, ?, ?, ?, ?, NULL, ?, ? * ?::numeric, (ARRAY[s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10])[?] FROM stock WHERE s_w_id = ? AND s_i_id = ?", "iiiiiiiitiii"},
   no_item = {"SELECT i_price FROM item WHERE i_id = 0", ""},
   takings = {"UPDATE warehouse SET w_ytd = w_ytd + ?::numeric / 100 WHERE w_id = ?", "ii"},
   takings_of_district = {"UPDATE district SET d_ytd = d_ytd + ?::numeric / 100 WHERE d_w_id = ? AND d_id = ?", "iii"},
   find = {"SELECT tpcc_find_customer(?::int, ?::int, tpcc_last_name(?::int))::text AS c", "iii"},
   pay = {"UPDATE customer SET c_balance = c_balance - ?::numeric / 100, c_ytd_payment = c_ytd_payment + ?::numeric / 100, c_payment_cnt = c_payment_cnt + 1, c_data = CASE WHEN c_credit = 'BC' THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, ?::int, ?::int, ?::numeric / 100, c_data), 500) ELSE c_data END WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", "iiiiiiii"},
   history = {"INSERT INTO history SELECT ?, ?, ?, ?, ?, now(), ?::numeric / 100, w_name || '    ' || d_name FROM warehouse JOIN district ON d_w_id = w_id WHERE w_id = ? AND d_id = ?", "iiiiiiii"},
   customer = {"SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", "iii"},
   last_order = {"SELECT max(o_id)::text AS o FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ?", "iii"},
   read_order = {"SELECT o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", "iii"},
   read_lines = {"SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", "iii"},
   take = {"WITH gone AS (DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = (SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1) RETURNING no_o_id) SELECT coalesce(max(no_o_id), 0)::text AS o FROM gone", "iiii"},
   carry = {"UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ? RETURNING o_c_id::text AS c", "iiii"},
   deliver = {"WITH done AS (UPDATE order_line SET ol_delivery_d = now() WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ? RETURNING ol_amount) SELECT sum(ol_amount)::text AS amount FROM done", "iii"},
   owe = {"UPDATE customer SET c_balance = c_balance + ?::numeric, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", "tiii"},
   next_order = {"SELECT d_next_o_id::text AS next FROM district WHERE d_w_id = ? AND d_id = ?", "ii"},
   low_stock = {"SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ? AND s_i_id = ol_i_id WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? - 20 AND ol_o_id < ? AND s_quantity < ?", "iiiiii"},
}

-- By name: a function of the parameters that executes a prepared statement and returns the first value of its result.
local run = {}

local function prepare(connection, text, types)
   local statement = connection:prepare(text)
   local parameters = {}
   for kind in types:gmatch(".") do
      local bound = kind == "i" and statement:bind_create(sysbench.sql.type.INT)
         or statement:bind_create(sysbench.sql.type.VARCHAR, 40)
      parameters[#parameters + 1] = bound
   end
   if #parameters > 0 then
      statement:bind_param(unpack(parameters))
   end
   return function(...)
      for place, parameter in ipairs(parameters) do
         parameter:set((select(place, ...)))
      end
      local result = statement:execute()
      if result ~= nil and result.nfields > 0 and result.nrows > 0 then
         return result:fetch_row()[1]
      end
   end
end

local function elsewhere(w)
   return (w - 1 + uniform(1, sysbench.opt.scale - 1)) % sysbench.opt.scale + 1
end

local new_order, payment, order_status, delivery, stock_level = {}, {}, {}, {}, {}

-- Clause 2.4: an order of 5 to 15 lines, one in a hundred of them from another warehouse; one order in a hundred names
-- an item that does not exist, and is rolled back.
function new_order.draw(item, customer)
   local scale = sysbench.opt.scale
   local work = {w = uniform(1, scale), d = uniform(1, 10), c = customer(), lines = uniform(5, 15), all_local = 1, i = {}, q = {}, s = {}}
   work.wrong = uniform(1, 100) == 1
   for n = 1, work.lines do
      work.i[n] = item()
      work.q[n] = uniform(1, 10)
      work.s[n] = (scale > 1 and uniform(1, 100) == 1) and elsewhere(work.w) or work.w
      if work.s[n] ~= work.w then
         work.all_local = 0
      end
   end
   return work
end

function new_order.run(work)
   local w, d = work.w, work.d
   run.begin()
   run.rates(w, d, work.c)
   local o = tonumber(run.number(w, d))
   run.order(o, d, w, work.c, work.lines, work.all_local)
   run.new_order(o, d, w)
   for n = 1, work.wrong and work.lines - 1 or work.lines do
      local i, q, s = work.i[n], work.q[n], work.s[n]
      local price = run.price(i)
      run.stock(q, q, q, q, s, w, s, i)
      run.line(o, d, w, n, i, s, q, q, price, d, s, i)
   end
   if work.wrong then
      run.no_item()
      run.rollback()
   else
      run.commit()
   end
end

-- Clause 2.5: six in ten customers are found by their last name, 15 in a hundred are of another warehouse.
function payment.draw(_, customer)
   local work = {w = uniform(1, sysbench.opt.scale), d = uniform(1, 10), amount = uniform(100, 500000), c = customer()}
   local far = uniform(1, 100) <= 15
   work.cw = (far and sysbench.opt.scale > 1) and elsewhere(work.w) or work.w
   work.cd = far and uniform(1, 10) or work.d
   work.named = uniform(1, 100) <= 60
   work.name = (bit.bor(uniform(0, 255), uniform(0, 999)) + 209) % 1000
   return work
end

function payment.run(work)
   local w, d, cw, cd, c, amount = work.w, work.d, work.cw, work.cd, work.c, work.amount
   run.begin()
   run.takings(amount, w)
   run.takings_of_district(amount, w, d)
   if work.named then
      c = tonumber(run.find(cw, cd, work.name))
   end
   run.pay(amount, amount, d, w, amount, cw, cd, c)
   run.history(c, cd, cw, d, w, amount, w, d)
   run.commit()
end

-- Clause 2.6: the last order of a customer.
function order_status.draw(_, customer)
   local work = {w = uniform(1, sysbench.opt.scale), d = uniform(1, 10), c = customer()}
   work.named = uniform(1, 100) <= 60
   work.name = (bit.bor(uniform(0, 255), uniform(0, 999)) + 209) % 1000
   return work
end

function order_status.run(work)
   local w, d, c = work.w, work.d, work.c
   run.begin()
   if work.named then
      c = tonumber(run.find(w, d, work.name))
   end
   run.customer(w, d, c)
   local o = tonumber(run.last_order(w, d, c))
   run.read_order(w, d, o)
   run.read_lines(w, d, o)
   run.commit()
end

-- Clause 2.7: the oldest new order of each district; one that another delivery has just taken is skipped.
function delivery.draw()
   return {w = uniform(1, sysbench.opt.scale), carrier = uniform(1, 10)}
end

function delivery.run(work)
   local w = work.w
   run.begin()
   for d = 1, 10 do
      local o = tonumber(run.take(w, d, w, d))
      if o > 0 then
         local c = tonumber(run.carry(work.carrier, w, d, o))
         local amount = run.deliver(w, d, o)
         run.owe(amount, w, d, c)
      end
   end
   run.commit()
end

-- Clause 2.8: items of a district's last 20 orders of which there is little.
function stock_level.draw()
   return {w = uniform(1, sysbench.opt.scale), d = uniform(1, 10), few = uniform(10, 20)}
end

function stock_level.run(work)
   local w, d = work.w, work.d
   run.begin()
   local next_o = tonumber(run.next_order(w, d))
   run.low_stock(w, w, d, next_o, next_o, work.few)
   run.commit()
end

-- In the mix of the scripts of pgbench; their names are those in which pgstrata counts.
local KINDS = {
   {"new-order", 45, new_order},
   {"payment", 43, payment},
   {"order-status", 4, order_status},
   {"delivery", 4, delivery},
   {"stock-level", 4, stock_level},
}

local connection, item, customer
local counts = {}

function thread_init()
   item, customer = ITEMS[sysbench.opt.access], CUSTOMERS[sysbench.opt.access]
   if item == nil then
      error("--access must be standard, uniform or pareto")
   end
   connection = sysbench.sql.driver():connect()
   for name, statement in pairs(STATEMENTS) do
      run[name] = prepare(connection, statement[1], statement[2])
   end
   for place = 1, #KINDS do
      counts[place] = 0
   end
end

-- The transaction in hand: one that is begun anew does the same again, as pgbench has it.
local place, work

function event()
   if work == nil then
      local drawn = uniform(1, 100)
      place = 1
      while drawn > KINDS[place][2] do
         drawn = drawn - KINDS[place][2]
         place = place + 1
      end
      work = KINDS[place][3].draw(item, customer)
   end
   KINDS[place][3].run(work)
   counts[place] = counts[place] + 1
   work = nil
end

-- sysbench begins a transaction anew after a deadlock, a serialization failure and a duplicate key, as often as it takes.
-- None of these transactions can make a duplicate key while the data are sound.
function sysbench.hooks.before_restart_event(failed)
   if failed.sql_state == "23505" then
      error("duplicate key: " .. failed.sql_errmsg)
   end
end

function thread_done()
   local said = {}
   for number, kind in ipairs(KINDS) do
      said[number] = kind[1] .. " " .. counts[number]
   end
   -- in one piece: all threads write to one file
   io.stdout:write("Transactions of a thread: " .. table.concat(said, ", ") .. "\n")
   connection:disconnect()
end
