/** A mount that the holder makes: what `mount -t TYPE -o OPTIONS SOURCE TARGET` says. */
export interface MountEntry {
  /** null: it changes the mount that is there. */
  source: string | null
  target: string
  type: 'none' | 'tmpfs'
  options: string
}

/** All that is mounted at `source` shows at `target`, too. */
export const bindTree = (source: string, target: string): MountEntry => ({
  source,
  target,
  type: 'none',
  options: 'rbind',
})

/** `flags`: those of the mount at `source`. */
export const bindReadOnly = (source: string, target: string, flags: readonly string[]): MountEntry[] => [
  bindTree(source, target),
  makeReadOnly(target, flags),
]

/** `flags`: those that the mount has. One that is not named would be taken off, which only the owner of the mount may do. */
export const makeReadOnly = (target: string, flags: readonly string[]): MountEntry => ({
  source: null,
  target,
  type: 'none',
  options: ['remount', 'bind', 'ro', ...flags].join(','),
})

export const emptyReadOnly = (target: string): MountEntry => ({
  source: 'svc',
  target,
  type: 'tmpfs',
  options: 'ro,mode=0700,nosuid,nodev',
})

/** A command line of the shell that makes it. */
export function mountCommand({ source, target, type, options }: MountEntry): string {
  const what = source === null ? [] : [quote(source)]
  return ['mount', ...(type === 'none' ? [] : ['-t', type]), '-o', options, ...what, quote(target)].join(' ')
}

/** Its line in a table as `/etc/fstab` is one. */
export const mountLine = ({ source, target, type, options }: MountEntry): string =>
  [escapeField(source ?? 'none'), escapeField(target), type, options, '0', '0'].join(' ')

/** Returns a field of a table: what would end it, or begin a comment, stands there by its number. */
const escapeField = (text: string): string =>
  text.replaceAll(/[\s\\#]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`)

export function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
