import { resolve, sep } from 'node:path'

const checkout = resolve(import.meta.dirname, '../..')

/**
 * Shell commands that give the processes of a mount namespace a /tmp of their own. A checkout that lies below /tmp stays where it
 * is: the folder in which the shell stands is held while the file system above it is covered.
 */
export function mountOwnTmp(options = ''): string {
  const mount = `mount -t tmpfs ${options} tmp /tmp`
  if (!`${checkout}${sep}`.startsWith('/tmp/')) return mount
  return `cd '${checkout}' && ${mount} && mkdir -p '${checkout}' && mount --no-canonicalize --bind . '${checkout}' && cd '${checkout}'`
}
