/**
 * Keeps compiled code from call to call, in a folder of this user's own: in the shared temporary folder, Node's default,
 * another user could lay down code for us. Without a home folder, or where it cannot be written, it is simply off.
 */
export function useCompileCache(env: NodeJS.ProcessEnv): void {
  // Set by the launchers from the sources, whose entry is TypeScript too; not meant for the programs svc starts.
  const isOn = env['NODE_COMPILE_CACHE'] !== undefined
  delete env['NODE_COMPILE_CACHE']
  const home = env['HOME'] ?? env['USERPROFILE']
  if (isOn || home === undefined || home === '') return
  const cache = env['XDG_CACHE_HOME'] ?? (process.platform === 'darwin' ? `${home}/Library/Caches` : `${home}/.cache`)
  process.getBuiltinModule('node:module').enableCompileCache(`${cache}/svc/compiled`)
}
