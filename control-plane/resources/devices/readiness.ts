import type { ProviderReadiness } from '../../../shared/device/protocol.ts'
import { onOneLine } from '../../trust/quote.ts'

export type HarnessState = ProviderReadiness['harnesses'][string]

/** Says whether the device starts runs with the harness. Whether somebody is signed in cannot always be known. */
export const isReady = ({ installed, signedIn, tooOld }: HarnessState): boolean =>
  installed && signedIn !== false && tooOld !== true

/** The words of a device on what is to be done so that a harness is ready on it; `message` null: it says nothing. */
export interface Advice {
  device: string
  message: string | null
}

/** A sentence of an adapter is shorter, and so many fit on a screen. */
const longest = 500
const mostNamed = 3

/** Repeats the devices' sentences for people, and each sentence once. Empty where no device says anything. */
export function repeatAdvice(advice: readonly Advice[]): string {
  const said = advice.flatMap(({ device, message }) => {
    const sentence = onOneLine(message ?? '').trim()
    return sentence === '' ? [] : [{ device: onOneLine(device), sentence: sentence.slice(0, longest) }]
  })
  const bySentence = [...Map.groupBy(said, ({ sentence }) => sentence)]
  const repeated = bySentence.slice(0, mostNamed).map(([sentence, of]) => {
    const more = of.length > mostNamed ? ` and ${of.length - mostNamed} more` : ''
    const names = of.slice(0, mostNamed).map(({ device }) => device)
    return `${names.join(', ')}${more}: ${sentence}`
  })
  return repeated.join(' | ')
}
