-- Runs a checkout of sysbench-tpcc, whose files stay as they are, and counts what it did: the statistics of sysbench tell
-- no kinds of transactions, and count a transaction that was begun anew and a new order that was rolled back on purpose
-- (clause 2.4.1.4) alike, as an ignored error. Such a new order is complete, and counts as one (clause 5.4).
require("@first@")

local KINDS = {
   {"new_order", "new-order"},
   {"payment", "payment"},
   {"orderstatus", "order-status"},
   {"delivery", "delivery"},
   {"stocklevel", "stock-level"},
   {"purge", "purge"},
}

local counted, retries = {}, 0

-- The checkout's event() looks its transactions up by their names each time. One that fails is left by an error.
for _, names in ipairs(KINDS) do
   local transaction = rawget(_G, names[1])
   if type(transaction) == "function" then
      local kind = {name = names[2], count = 0}
      counted[#counted + 1] = kind
      _G[names[1]] = function(...)
         local result = transaction(...)
         kind.count = kind.count + 1
         return result
      end
   end
end

local before_restart_event = sysbench.hooks.before_restart_event
function sysbench.hooks.before_restart_event(failed)
   retries = retries + 1
   if before_restart_event then
      return before_restart_event(failed)
   end
end

local finish = thread_done
function thread_done(...)
   local said = {}
   for place, kind in ipairs(counted) do
      said[place] = kind.name .. " " .. kind.count
   end
   -- each line in one piece: all threads write to one file
   if #said > 0 then
      io.stdout:write("Transactions of a thread: " .. table.concat(said, ", ") .. "\n")
   end
   io.stdout:write("Retries of a thread: " .. retries .. "\n")
   if finish then
      return finish(...)
   end
end
