module frontback

go 1.21
