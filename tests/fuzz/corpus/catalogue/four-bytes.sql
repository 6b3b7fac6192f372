UPDATE series SET times = x'00000000';
