"""Virtual machines that pgstrata makes and boots, each from one image: a root file system and kernels.

`kernels` chooses kernels and the modules that they need; `initramfs` and `image` make what is booted; `qemu`
composes the command; `machine` boots it and waits until ssh reaches it.
"""
