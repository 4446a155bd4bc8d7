#!/usr/bin/env node
// There are no static imports, for two reasons: the version of Node must be checked before anything is loaded that an
// older one cannot read, and modules loaded before the compile cache is on are compiled anew each time.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 12)) {
  process.stderr.write(
    `svc needs Node 24.12 or newer; this is Node ${process.versions.node}. Install a newer one (https://nodejs.org) and put it first on PATH.\n`,
  )
  process.exitCode = 70
} else {
  useCompileCache(process.env)
  // No `await` here: the bundle is CommonJS (scripts/build.ts).
  void import('./start.ts').then(async ({ start }) => {
    // Everything is written by now, and an orderly exit would take longer than most of the work.
    process.exit(await start(process.argv.slice(2)))
  })
}

/**
 * Keeps compiled code from call to call in a folder of this user. In the shared temporary folder, Node's default,
 * another user could place code for us. Without a home folder, or where it cannot be written, the cache is off.
 */
function useCompileCache(env: NodeJS.ProcessEnv): void {
  // Set by launchers that run the TypeScript sources. It is not meant for the programs that svc starts.
  const isOn = env['NODE_COMPILE_CACHE'] !== undefined
  delete env['NODE_COMPILE_CACHE']
  const home = env['HOME'] ?? env['USERPROFILE']
  if (isOn || home === undefined || home === '') return
  const cache = env['XDG_CACHE_HOME'] ?? (process.platform === 'darwin' ? `${home}/Library/Caches` : `${home}/.cache`)
  process.getBuiltinModule('node:module').enableCompileCache(`${cache}/svc/compiled`)
}
