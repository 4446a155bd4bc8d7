import { programFlaw, type ProgramFlaw } from '../program/flaw.ts'
import { asGuestError, type Instance } from './instance.ts'
import { positionIn, programFile, wrapped } from './source.ts'

/** Returns why the engine cannot run the program, though it parses elsewhere; null when it can. */
export function compileProgram(instance: Instance, source: string): ProgramFlaw | null {
  instance.begin(0)
  const { vm } = instance
  try {
    // Makes the function, and does not call it.
    vm.evalCode(wrapped(source), programFile)
    vm.dispose()
    return null
  } catch (error) {
    const thrown = asGuestError(error)
    if (thrown === null)
      return programFlaw('workflow_syntax', 'The program is too large or nested too deeply to be run.')
    return { ...programFlaw('workflow_syntax', `${thrown.message}.`), ...positionIn(thrown.stack ?? '') }
  }
}
