UPDATE run SET environment = 'nobody';
