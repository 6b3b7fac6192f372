"""Virtual machines that pgstrata makes and boots, each from one image: a root file system and kernels.

`kernels` chooses kernels and the modules that they need; `initramfs` and `image` make the files to boot; `qemu`
composes the command; `machine` boots the machine and waits until ssh reaches it.
"""
