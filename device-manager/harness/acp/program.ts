import type { SignInWords } from '../parts/failure.ts'

/** The facts about the program that are known beforehand. */
export interface AcpProgram extends SignInWords {
  /** The method that takes what a person has signed in with; it is asked for where the program wants it first. */
  signInMethod?: string
}
export const anyProgram: AcpProgram = {
  signInHint: 'The program is not signed in; sign in with the program itself.',
  signInWith: 'the program itself',
}
