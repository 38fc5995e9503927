"""CofiRanker's default depends on the unit of the ratings.

Like: questions on rating scales (NicolasHug/Surprise#386 and its `rating_scale`; half stars, 0 to 1). Right: ratings in another unit are
the same preferences; a regression with its strength relative to lambda_max gives the same lists. Seen: one of 60 lists is the
same after dividing by 5, since `popularity=0.1` is in units of the ratings (popularity_prior=0.02 gives all 60 again).
"""
from rankopt.ratings import Ratings, load_ratings_sample
from rankopt.rankers import CofiRanker

films = load_ratings_sample()
users, items = films.users[films.user_of()], films.items[films.columns]

def lists(unit, **options):
    ranker = CofiRanker(factors=4, reg=0.5, **options).fit(Ratings.from_arrays(users, items, films.values * unit))
    return [tuple(found) for _, found in ranker.recommend(films.users[:60].tolist(), k=10)]

stars = lists(1.0)
assert lists(0.2, popularity_prior=0.02) == stars
same = sum(one == other for one, other in zip(stars, lists(0.2), strict=True))
print("lists that stay:", same, "of 60")
assert same == 60, same
