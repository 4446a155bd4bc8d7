/** What a result is, for the table that people see. Without a look the most telling fields are shown. */
export interface Shape {
  look?: string | undefined
  /** The key of the list in it; without one the usual keys are tried. */
  list?: string | undefined
  /** The flag that reads the next page. */
  nextFlag?: string | undefined
  /** `--all` reads all pages. */
  hasAll?: boolean
}
