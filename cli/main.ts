#!/usr/bin/env node
// No static imports: the version of Node is looked at before anything is loaded that an older one could not read, and
// what is loaded before the compile cache is on is compiled anew each time.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 12)) {
  process.stderr.write(
    `svc needs Node 24.12 or newer; this is Node ${process.versions.node}. Install a newer one (https://nodejs.org) and put it first on PATH.\n`,
  )
  process.exitCode = 70
} else {
  const { useCompileCache } = await import('./compile-cache.ts')
  useCompileCache(process.env)
  const { start } = await import('./start.ts')
  process.exitCode = await start(process.argv.slice(2))
}
