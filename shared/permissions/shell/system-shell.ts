/** Folders of the system, of its package managers and of no project: whoever may put a program there needs no other way. */
const folders = String.raw`/(?:usr/(?:local/)?)?bin/|/opt/(?:homebrew|local)/bin/|/run/current-system/sw/bin/|/nix/store/[\w.+-]+/bin/`
const shell = new RegExp(`^(?:${folders})?(?:ba|z|da|k)?sh$`)

/** Says whether the program is a shell for certain. One that only has the name of a shell may be anything, say a file of the repository. */
export const isSystemShell = (program: string): boolean => shell.test(program)
