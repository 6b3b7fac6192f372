-- The throughput of the client alone: asks for nothing but an answer, in the protocol of --db-ps-mode.
function thread_init()
   connection = sysbench.sql.driver():connect()
   statement = connection:prepare("SELECT 1")
end

function event()
   statement:execute()
end

function thread_done()
   statement:close()
   connection:disconnect()
end
