SELECT '' AS pgstrata, '' AS reset
