import { isAbsolute } from 'node:path'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { HarnessLaunch } from '../adapter.ts'
import { HarnessLaunchError } from '../parts/adapter-errors.ts'

/** The word that lets the command start. */
export const goAhead = 'go'

/**
 * Goes to the folder of the command and tells where that is, as the system sees it: nothing can be put in its place from then
 * on. Becomes the command when it reads the word; when nobody says it, since the run host is gone or denies, it ends.
 */
const script = `unset CDPATH
cd -P . 2>/dev/null && root=$PWD || { printf 'cwd_missing\\0\\0'; exit 1; }
cd -P -- "$1" 2>/dev/null || { printf 'cwd_missing\\0\\0'; exit 1; }
case "\${PWD%/}/" in
"\${root%/}/"*) ;;
*) printf 'cwd_outside\\0\\0'; exit 1 ;;
esac
shift
printf 'ready\\0%s\\0' "$PWD"
IFS= read -r word && [ "$word" = ${goAhead} ] || exit 1
exec </dev/null 2>&1
exec "$@"`

/** Launches the shell that waits with the command. Without a terminal: nobody is there to answer what it may ask. */
export function commandStepLaunch({ gate }: RunSpec): HarnessLaunch {
  if (gate == null) throw new HarnessLaunchError('The run has no command of a gate.')
  const { argv, cwd } = gate
  const folder = cwd === null ? '.' : isAbsolute(cwd) ? cwd : `./${cwd}`
  return {
    file: '/bin/sh',
    args: ['-c', script, 'gate', folder, ...argv],
    env: {},
    io: 'pipes',
    isTranscript: true,
    files: [],
  }
}
