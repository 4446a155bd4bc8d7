import { build } from 'plist'
import { launchdKeys, plistOf } from '../../shared/lib/launchd-words.ts'
import { stopSeconds, type ServerUnit } from './server-unit.ts'

/** The name of the server to launchd. */
export const serverLabel = 'dev.svc.server'

/** At least so long after the start before. */
const restartSeconds = 10

/**
 * The launchd agent of a person. launchd has no file of settings, so Node reads it: a value with `#` in it stands in quotes there.
 */
export function serverPlistText(unit: ServerUnit, { homeDir, outFile }: { homeDir: string; outFile: string }): string {
  const { node, main, path, dataDir, environmentFile } = unit
  const keys = launchdKeys({
    label: serverLabel,
    program: [node, '--disable-warning=ExperimentalWarning', `--env-file-if-exists=${environmentFile}`, main, 'start'],
    env: { PATH: path, SVC_DATA_DIR: dataDir },
    homeDir,
    umask: 0o077,
    outFile,
    restartSeconds,
    stopSeconds,
    leavesPrograms: false,
  })
  return plistOf(build(keys))
}
