"""The project's own rules over synthesised templates: one rule a file, wired into a validation plugin by `plugin`.

A declaration is checked when it is read (hybridjobs.model); these rules see what is deployed in the end, whoever wrote
it: a construct that is changed, or a stack that another team adds to the app.
"""
