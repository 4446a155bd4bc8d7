import { adviceToModel } from '../../../shared/permissions/decide.ts'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import { errorEvent } from '../parts/error-event.ts'

/** Texts of a person that wait for the end of the turn. */
const maxTexts = 100
/** More reasons than a model needs. */
const maxReasons = 20

/** What follows a turn. */
export interface NextPrompt {
  events: RunEventBody[]
  /** Empty: the run is over. */
  texts: string[]
  /** Why the run is no success although its turn ended well. */
  failure: string | null
}

/**
 * What the model is told after a turn: what a person has added meanwhile, and why a call was refused at which the program ended its turn.
 *
 * Some programs end their turn when a call is refused, as they would where a person stopped them, and say that it ended well. The
 * model then never learns why, and what was to be done after the call is not done. A turn ended so when its model said nothing after
 * the refusal. Once in a run that is told by a prompt of its own; besides, only where a person's text is sent anyhow.
 */
export class Prompts {
  #added: string[] = []
  /** Of calls after which the model has said nothing. */
  #reasons: string[] = []
  #hasPrompted = false
  #isStopped = false

  /** False: there are too many. */
  add(text: string): boolean {
    return this.#added.length < maxTexts && this.#added.push(text) > 0
  }

  undelivered(): string[] {
    return this.#added.splice(0)
  }

  refused(reason: string): void {
    if (this.#reasons.length < maxReasons) this.#reasons.push(reason.replace(adviceToModel, ''))
  }

  sawWords(): void {
    this.#reasons = []
  }

  /** The program was told to end its turn, so nothing follows. */
  stop(): void {
    this.#isStopped = true
  }

  /** `hasEndedWell`: the turn, and nothing else ends the run. */
  next(hasEndedWell: boolean): NextPrompt {
    if (!hasEndedWell || this.#isStopped) return { events: [], texts: [], failure: null }
    const added = this.#added.splice(0, 1)
    const why = this.#reasons.splice(0).join(' ')
    if (why === '') return { events: [], texts: added, failure: null }
    if (this.#hasPrompted && added.length === 0) {
      const failure = `The program ended its turn at a call that was denied, also after it was told to go on: ${why}`
      return { events: [], texts: [], failure }
    }
    this.#hasPrompted = true
    const told = `Your turn ended at a call that was denied, by a rule and not by a person. ${why}${adviceToModel}`
    const event = errorEvent('turn_ended_by_refusal', `The program ended its turn at a call that was denied: ${why}`)
    return { events: [event], texts: [told, ...added], failure: null }
  }
}
